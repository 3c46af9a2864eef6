"""Folders of Parquet files that may be larger than memory, on a cluster."""
