-- Ends the load of a thread after a hundred responses.
local seen = 0

response = function()
   seen = seen + 1
   if seen == 100 then
      wrk.thread:stop()
   end
end
