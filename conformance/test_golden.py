"""Does an implementation of what a model is made of give the stored answers, which float64 PyTorch and the spec's oracle agreed
on?

One test for each requirement that has goldens, in the order of the components; in `test_golden_caches` and `test_golden_models` likewise.
"""

from inferspec.conformance.properties.golden import gives_the_goldens
from inferspec.conformance.suite import requirement
from inferspec.spec import (
    attention,
    embedding,
    flash_attention,
    linear,
    mlp,
    paged_attention,
    quantization_sentences,
    rms_norm,
    rope,
)


@requirement(linear.LIN_01)
def test_golden_products(subject):
    gives_the_goldens(subject)


@requirement(linear.LIN_02)
def test_golden_biases(subject):
    gives_the_goldens(subject)


@requirement(linear.LIN_03)
def test_golden_sums_of_many_features(subject):
    gives_the_goldens(subject)


@requirement(linear.SILU_01)
def test_golden_silu(subject):
    gives_the_goldens(subject)


@requirement(linear.SILU_02)
def test_golden_silu_of_large_numbers(subject):
    gives_the_goldens(subject)


@requirement(linear.SMAX_01)
def test_golden_softmax(subject):
    gives_the_goldens(subject)


@requirement(linear.SMAX_02)
def test_golden_softmax_along_other_axes(subject):
    gives_the_goldens(subject)


@requirement(linear.SMAX_03)
def test_golden_softmax_of_large_logits(subject):
    gives_the_goldens(subject)


@requirement(linear.SMAX_04)
def test_golden_softmax_beside_minus_infinity(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_01)
def test_golden_attention(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_02)
def test_golden_given_scales(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_03)
def test_golden_grouped_heads(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_04)
def test_golden_array_masks(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_05)
def test_golden_causal_attention(subject):
    gives_the_goldens(subject)


@requirement(attention.ATTN_06)
def test_golden_encodings_of_masks(subject):
    gives_the_goldens(subject)


@requirement(attention.MHA_01)
def test_golden_multi_head_attention(subject):
    gives_the_goldens(subject)


@requirement(attention.MHA_03)
def test_golden_free_head_dims(subject):
    gives_the_goldens(subject)


@requirement(attention.MHA_04)
def test_golden_multi_head_masks(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_01)
def test_golden_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_02)
def test_golden_scales_given_to_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_03)
def test_golden_grouped_heads_of_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_04)
def test_golden_array_masks_of_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_05)
def test_golden_causal_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_06)
def test_golden_encodings_of_masks_of_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_18)
def test_golden_flash_attention_beside_tiles(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_19)
def test_golden_wide_heads_of_flash_attention(subject):
    gives_the_goldens(subject)


@requirement(flash_attention.FLASH_20)
def test_golden_flash_attention_of_rising_logits(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_01)
def test_golden_paged_attention(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_02)
def test_golden_pages_of_one_token(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_03)
def test_golden_contexts_of_any_length(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_04)
def test_golden_contexts_beside_the_end_of_a_page(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_05)
def test_golden_grouped_heads_of_paged_attention(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_06)
def test_golden_chunks_of_paged_attention(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_07)
def test_golden_paged_attention_without_a_mask(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_08)
def test_golden_scales_given_to_paged_attention(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_11)
def test_golden_shared_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_19)
def test_golden_wide_heads_of_paged_attention(subject):
    gives_the_goldens(subject)


@requirement(paged_attention.PAGED_25)
def test_golden_tables_of_any_integers(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_01)
def test_golden_split_half_rope(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_02)
def test_golden_traditional_rope(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_03)
def test_golden_int_offsets(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_04)
def test_golden_slice_offsets(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_05)
def test_golden_offsets_of_batch_rows(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_06)
def test_golden_bases(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_07)
def test_golden_far_positions(subject):
    gives_the_goldens(subject)


@requirement(rope.ROPE_12)
def test_golden_partial_rope(subject):
    gives_the_goldens(subject)


@requirement(rms_norm.RMS_01)
def test_golden_norms(subject):
    gives_the_goldens(subject)


@requirement(rms_norm.RMS_02)
def test_golden_eps(subject):
    gives_the_goldens(subject)


@requirement(rms_norm.RMS_03)
def test_golden_norm_weights(subject):
    gives_the_goldens(subject)


@requirement(rms_norm.RMS_04)
def test_golden_norms_of_large_and_tiny_rows(subject):
    gives_the_goldens(subject)


@requirement(rms_norm.RMS_09)
def test_golden_norm_beside_a_bracket(subject):
    gives_the_goldens(subject)


@requirement(mlp.MLP_01)
def test_golden_swiglu(subject):
    gives_the_goldens(subject)


@requirement(mlp.MLP_02)
def test_golden_gate_and_up(subject):
    gives_the_goldens(subject)


@requirement(mlp.MLP_05)
def test_golden_strong_gates(subject):
    gives_the_goldens(subject)


@requirement(mlp.MLP_06)
def test_golden_swiglu_batches(subject):
    gives_the_goldens(subject)


@requirement(embedding.EMB_01)
def test_golden_lookups(subject):
    gives_the_goldens(subject)


@requirement(embedding.EMB_02)
def test_golden_lookups_past_255(subject):
    gives_the_goldens(subject)


@requirement(embedding.EMB_03)
def test_golden_lookup_of_one_token(subject):
    gives_the_goldens(subject)


@requirement(embedding.EMB_10)
def test_golden_heads(subject):
    gives_the_goldens(subject)


@requirement(embedding.EMB_13)
def test_golden_heads_of_batches(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.DEQ_01)
def test_golden_codes_of_every_size(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.DEQ_02)
def test_golden_scales_and_biases_of_groups(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.DEQ_03)
def test_golden_weights_rounded_once(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QMM_01)
def test_golden_quantized_products(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QMM_02)
def test_golden_quantized_products_not_transposed(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QMM_03)
def test_golden_quantized_sums_of_many_features(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QMM_05)
def test_golden_quantized_products_of_batches(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QLIN_01)
def test_golden_quantized_layers(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QLIN_02)
def test_golden_quantized_layers_with_bias(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QEMB_01)
def test_golden_rows_of_quantized_tables(subject):
    gives_the_goldens(subject)


@requirement(quantization_sentences.QEMB_09)
def test_golden_quantized_heads(subject):
    gives_the_goldens(subject)
