-- Kernel dispatches of one rank: name as id, times [ns], agent, stream, queue, event; stack id of the launching call;
-- launch parameters: grid and work-group [work-items], LDS of a work-group and scratch of a work-item [bytes].
SELECT K.id AS id, K.dispatch_id AS number, K.kernel_id AS name, K.start, K."end", K.agent_id AS agent,
    K.stream_id AS stream, K.queue_id AS queue, K.event_id AS event, E.stack_id AS stack,
    K.grid_size_x, K.grid_size_y, K.grid_size_z, K.workgroup_size_x, K.workgroup_size_y, K.workgroup_size_z,
    K.group_segment_size AS lds, K.private_segment_size AS scratch
FROM rocpd_kernel_dispatch K
LEFT JOIN rocpd_event E ON E.id = K.event_id
