"""Properties that several suites share, each a sentence about one subject and one call or story; `common` is every component's."""
