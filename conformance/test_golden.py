"""Does an implementation give the stored answers, which float64 PyTorch and the spec's oracle agreed on?

One test for each requirement that has goldens, in the order of the components. Their features lie in the contract's
envelope; those outside the subject's are left out.
"""

from collections.abc import Mapping

from inferspec import golden
from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope, narrow
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance, Trial
from inferspec.golden import GoldenError
from inferspec.spec import (
    attention,
    batching,
    embedding,
    flash_attention,
    kv_cache,
    linear,
    llama,
    metrics,
    mlp,
    paged_attention,
    paged_kv,
    quantization,
    qwen3,
    rms_norm,
    rope,
    sampling,
)
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import Precision


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


@requirement(kv_cache.KV_01)
def test_golden_appends(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.KV_02)
def test_golden_chunks_of_any_size(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.KV_05)
def test_golden_offsets(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.KV_12)
def test_golden_rewinds(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.KV_20)
def test_golden_restored_caches(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.SKV_01)
def test_golden_appends_to_a_preallocated_cache(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.SKV_12)
def test_golden_rewinds_of_a_preallocated_cache(subject):
    gives_the_goldens(subject)


@requirement(kv_cache.SKV_20)
def test_golden_restored_preallocated_caches(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_01)
def test_golden_batches(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_02)
def test_golden_batches_of_several_lengths(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_03)
def test_golden_masks_of_batches(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_04)
def test_golden_idle_slots(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_06)
def test_golden_slots_used_again(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_07)
def test_golden_attention_of_batches(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_08)
def test_golden_comings_and_goings(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_09)
def test_golden_requests_without_a_prompt(subject):
    gives_the_goldens(subject)


@requirement(batching.BATCH_18)
def test_golden_offsets_of_batches(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.POOL_02)
def test_golden_counts_of_free_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_01)
def test_golden_appends_to_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_02)
def test_golden_chunks_appended_to_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_03)
def test_golden_tokens_read_by_their_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_04)
def test_golden_offsets_of_paged_caches(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_05)
def test_golden_counts_of_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_06)
def test_golden_lengths_of_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_08)
def test_golden_caches_on_one_pool(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_12)
def test_golden_rewinds_of_paged_caches(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_13)
def test_golden_pages_given_back_by_rewinds(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.PKV_17)
def test_golden_pages_given_back_by_releases(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.TABLE_01)
def test_golden_block_tables(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.TABLE_02)
def test_golden_context_lengths(subject):
    gives_the_goldens(subject)


@requirement(paged_kv.TABLE_03)
def test_golden_block_tables_of_their_time(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_01)
def test_golden_llama_logits(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_02)
def test_golden_tied_llama_heads(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_04)
def test_golden_a_llama_without_a_head_dim(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_05)
def test_golden_llama_rope_parameters(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_06)
def test_golden_llama_eps(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_08)
def test_golden_llama_biases(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_13)
def test_golden_packed_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_24)
def test_golden_chunks_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_28)
def test_golden_requests_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_33)
def test_golden_linear_scaling_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_34)
def test_golden_llama3_scaling_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_35)
def test_golden_yarn_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_36)
def test_golden_fields_of_yarn_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_37)
def test_golden_scaled_rope_parameters_of_llama(subject):
    gives_the_goldens(subject)


@requirement(llama.LLAMA_40)
def test_golden_scaled_chunks_of_llama(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_01)
def test_golden_qwen3_logits(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_02)
def test_golden_tied_qwen3_heads(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_05)
def test_golden_qwen3_rope_parameters(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_06)
def test_golden_qwen3_eps(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_08)
def test_golden_norms_of_qwen3_heads(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_13)
def test_golden_packed_qwen3(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_24)
def test_golden_chunks_of_qwen3(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_28)
def test_golden_requests_of_qwen3(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_34)
def test_golden_llama3_scaling_of_qwen3(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_35)
def test_golden_yarn_of_qwen3(subject):
    gives_the_goldens(subject)


@requirement(qwen3.QWEN3_40)
def test_golden_scaled_chunks_of_qwen3(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_04)
def test_golden_latencies(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_05)
def test_golden_latencies_of_chunks(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_06)
def test_golden_latencies_of_one_token(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_08)
def test_golden_latencies_on_a_large_clock(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_22)
def test_golden_means(subject):
    gives_the_goldens(subject)


@requirement(metrics.METR_25)
def test_golden_rates(subject):
    gives_the_goldens(subject)


@requirement(sampling.SAMP_01)
def test_golden_limits(subject):
    gives_the_goldens(subject)


@requirement(sampling.SAMP_02)
def test_golden_limits_among_equal_logits(subject):
    gives_the_goldens(of_the_lowest(subject))


@requirement(sampling.SAMP_05)
def test_golden_nuclei(subject):
    gives_the_goldens(subject)


@requirement(sampling.SAMP_07)
def test_golden_nuclei_among_equal_logits(subject):
    gives_the_goldens(of_the_lowest(subject))


@requirement(sampling.SAMP_08)
def test_golden_nuclei_of_limits(subject):
    gives_the_goldens(subject)


@requirement(sampling.SAMP_21)
def test_golden_greedy_ids(subject):
    gives_the_goldens(subject)


@requirement(sampling.SAMP_22)
def test_golden_draws(subject):
    gives_the_goldens(by_id(subject))


@requirement(sampling.SAMP_24)
def test_golden_filtered_draws(subject):
    gives_the_goldens(by_id(subject))


@requirement(sampling.SAMP_26)
def test_golden_tempered_draws(subject):
    gives_the_goldens(by_id(subject))


@requirement(quantization.DEQ_01)
def test_golden_codes_of_every_size(subject):
    gives_the_goldens(subject)


@requirement(quantization.DEQ_02)
def test_golden_scales_and_biases_of_groups(subject):
    gives_the_goldens(subject)


@requirement(quantization.DEQ_03)
def test_golden_weights_rounded_once(subject):
    gives_the_goldens(subject)


@requirement(quantization.QMM_01)
def test_golden_quantized_products(subject):
    gives_the_goldens(subject)


@requirement(quantization.QMM_02)
def test_golden_quantized_products_not_transposed(subject):
    gives_the_goldens(subject)


@requirement(quantization.QMM_03)
def test_golden_quantized_sums_of_many_features(subject):
    gives_the_goldens(subject)


@requirement(quantization.QMM_05)
def test_golden_quantized_products_of_batches(subject):
    gives_the_goldens(subject)


@requirement(quantization.QLIN_01)
def test_golden_quantized_layers(subject):
    gives_the_goldens(subject)


@requirement(quantization.QLIN_02)
def test_golden_quantized_layers_with_bias(subject):
    gives_the_goldens(subject)


@requirement(quantization.QEMB_01)
def test_golden_rows_of_quantized_tables(subject):
    gives_the_goldens(subject)


@requirement(quantization.QEMB_09)
def test_golden_quantized_heads(subject):
    gives_the_goldens(subject)


def by_id(subject: Trial) -> Trial:
    """The subject, if it draws as the goldens were drawn."""
    narrow(subject.envelope, {"draws_by": ["id"]})
    return subject


def of_the_lowest(subject: Trial) -> Trial:
    """The subject, if of equal ids it leaves those that the goldens have."""
    narrow(subject.envelope, {"ties": ["lowest ids"]})
    return subject


def gives_the_goldens(subject: Trial) -> None:
    """Every golden of the requirement inside the subject's envelope, each an example of its own."""
    about = subject.requirement.id
    stored = [one for one in golden.cases(subject.contract.component) if one.requirement == about]
    if not stored:
        raise GoldenError(f"{about} has a golden test and no golden: add a recipe, or remove the test")
    inside = [one for one in stored if not one.beyond(subject.envelope)]
    if not inside:
        raise OutsideEnvelope(f"every golden of {about} has something that is not claimed: {_beyond(subject, stored)}")
    # A waived failure ends the test: those come last.
    inside.sort(key=lambda one: bool(subject.waiver and subject.waiver.covers(one.features)))
    for number, one in enumerate(inside):
        if number:
            subject.begin()
        _gives(subject, one)


def _gives(subject: Trial, one: golden.Golden) -> None:
    call = Call(one.operation, one.arguments, one.features, seed=one.seed)
    answer = subject.answer(call, Precision.FLOAT32)
    oracle = answer if isinstance(answer, Mapping) else {"": answer}
    budgets = {part: each.budget for part, each in oracle.items()}
    if not one.equals({part: each.value for part, each in oracle.items()}, budgets):
        raise GoldenError(f"golden {one.id} is no longer the oracle's answer: run `inferspec golden check`")
    got = subject.answered(call).results
    if missing := [part for part in one.answers if part not in got]:
        raise Nonconformance(f"{missing[0]} is missing; it came with {', '.join(got)}", call)
    for part in (p for p in one.answers if not subject.operation.leaves_aside(p, subject.requirement.id)):
        expected = one.answers[part]
        subject.compare(call, got[part], Answer(expected, budgets[part]), part=part)


def _beyond(subject: Trial, stored: list[golden.Golden]) -> str:
    return ", ".join(sorted({feature for one in stored for feature in one.beyond(subject.envelope)}))
