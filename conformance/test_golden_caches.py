"""Do an implementation's caches give the stored answers, which float64 PyTorch and the spec's oracle agreed on?"""

from inferspec.conformance.properties.golden import gives_the_goldens
from inferspec.conformance.suite import requirement
from inferspec.spec import batching, kv_cache, paged_kv_sentences


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


@requirement(paged_kv_sentences.POOL_02)
def test_golden_counts_of_free_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_01)
def test_golden_appends_to_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_02)
def test_golden_chunks_appended_to_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_03)
def test_golden_tokens_read_by_their_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_04)
def test_golden_offsets_of_paged_caches(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_05)
def test_golden_counts_of_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_06)
def test_golden_lengths_of_pages(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_08)
def test_golden_caches_on_one_pool(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_12)
def test_golden_rewinds_of_paged_caches(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_13)
def test_golden_pages_given_back_by_rewinds(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.PKV_17)
def test_golden_pages_given_back_by_releases(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.TABLE_01)
def test_golden_block_tables(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.TABLE_02)
def test_golden_context_lengths(subject):
    gives_the_goldens(subject)


@requirement(paged_kv_sentences.TABLE_03)
def test_golden_block_tables_of_their_time(subject):
    gives_the_goldens(subject)
