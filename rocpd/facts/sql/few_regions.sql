-- Regions of one rank with stack ids {stacks}, its markers, and its regions with invalid times; columns of `regions`.
SELECT * FROM ({{regions}})
WHERE stack IN ({stacks}) OR category IN ({{marker_categories}}) OR ({{valid_times}}) IS NOT TRUE
