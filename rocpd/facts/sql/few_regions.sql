-- Regions of one rank with stack ids {stacks}, its markers, and the regions whose times are invalid; columns as of all.
SELECT * FROM ({{regions}})
WHERE stack IN ({stacks}) OR category IN ({{marker_categories}}) OR ({{valid_times}}) IS NOT TRUE
