-- Keeps a record of no task's. Answers the record that was there already, or nil.
local earlier = read_record(ARGV[1])
if earlier then return earlier end
keep_record(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], '')
return false
