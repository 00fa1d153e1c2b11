-- Accesses to pages of memory of one rank, as Omniprobe counted them by dispatch.
SELECT kernel, ordinal, start_address, end_address, accesses
FROM memory_pages
