-- Copies of one rank: direction as id, times [ns], agent, stream, size [bytes].
-- A copy belongs to the GPU that it reaches, else to the GPU that it leaves, else to where it goes.
SELECT
    M.id AS id, M.name_id AS name, M.start, M."end",
    CASE WHEN D.type IS 'GPU' OR S.type IS NOT 'GPU' THEN M.dst_agent_id ELSE M.src_agent_id END AS agent,
    M.stream_id AS stream, M.size
FROM rocpd_memory_copy M
LEFT JOIN rocpd_info_agent D ON D.id = M.dst_agent_id
LEFT JOIN rocpd_info_agent S ON S.id = M.src_agent_id
