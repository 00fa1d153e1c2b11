-- Copies of one rank: direction as id, times [ns], size [bytes], both agents.
SELECT id, name_id AS name, start, "end", size, src_agent_id AS source, dst_agent_id AS destination
FROM rocpd_memory_copy
