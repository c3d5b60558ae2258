-- Keeps a message record without a task, unless there is one already. Answers the earlier record, or nil.
local earlier = read_record(ARGV[1])
if earlier then return earlier end
keep_record(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], '')
add_usage(ARGV[1], 0, tonumber(ARGV[8]))
return false
