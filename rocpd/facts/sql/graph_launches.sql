-- Graph launches of one rank: category as id, times [ns], agent.
SELECT L.id AS id, NULL AS name, E.category_id AS category, L.start, L."end", L.agent_id AS agent, NULL AS stream
FROM rocpd_graph_launch L
LEFT JOIN rocpd_event E ON E.id = L.event_id
