"""Do an implementation's models, sampling and metrics give the stored answers, which float64 PyTorch and the spec's oracle agreed on?"""

from inferspec.conformance.properties.golden import by_id, gives_the_goldens, of_the_lowest
from inferspec.conformance.suite import requirement
from inferspec.spec import llama, metrics, qwen3, sampling_sentences


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


@requirement(sampling_sentences.SAMP_01)
def test_golden_limits(subject):
    gives_the_goldens(subject)


@requirement(sampling_sentences.SAMP_02)
def test_golden_limits_among_equal_logits(subject):
    gives_the_goldens(of_the_lowest(subject))


@requirement(sampling_sentences.SAMP_05)
def test_golden_nuclei(subject):
    gives_the_goldens(subject)


@requirement(sampling_sentences.SAMP_07)
def test_golden_nuclei_among_equal_logits(subject):
    gives_the_goldens(of_the_lowest(subject))


@requirement(sampling_sentences.SAMP_08)
def test_golden_nuclei_of_limits(subject):
    gives_the_goldens(subject)


@requirement(sampling_sentences.SAMP_21)
def test_golden_greedy_ids(subject):
    gives_the_goldens(subject)


@requirement(sampling_sentences.SAMP_22)
def test_golden_draws(subject):
    gives_the_goldens(by_id(subject))


@requirement(sampling_sentences.SAMP_24)
def test_golden_filtered_draws(subject):
    gives_the_goldens(by_id(subject))


@requirement(sampling_sentences.SAMP_26)
def test_golden_tempered_draws(subject):
    gives_the_goldens(by_id(subject))
