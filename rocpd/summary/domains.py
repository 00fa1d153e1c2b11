"""Owns the names of domains that the command line offers; imports nothing."""

REGION_DOMAINS = ("HIP", "HSA", "RCCL", "MARKERS", "ROCDECODE", "ROCJPEG", "OMPT", "KFD")
"""Domains of regions that `--region-categories` knows, besides whatever a file holds."""

GPU_DOMAINS = {
    "KERNELS": "kernels_summary",
    "MEMORY_COPIES": "memory_copies_summary",
    "MEMORY_ALLOCATIONS": "memory_allocations_summary",
    "SCRATCH_MEMORY": "scratch_memory_summary",
}
"""Domains that are always summarised, with the name of their table; region domains are `<domain>_summary`."""
