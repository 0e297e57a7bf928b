"""What is done with certificates: read, shown as a page or a badge, joined from shards, compared."""
