-- A whole task, or nil.
local head = read_head(ARGV[1])
return head and whole_task(ARGV[1], head) or false
