-- Accesses to memory of single waves of one rank, as Omniprobe wrote them.
SELECT kernel, ordinal, source_line, access, lanes, addresses
FROM memory_messages
