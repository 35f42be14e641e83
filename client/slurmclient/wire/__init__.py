"""slurmrestd's JSON, read into structs and written from them."""
