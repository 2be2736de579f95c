-- Another path and header with each request of a thread.
local made = 0

request = function()
   wrk.headers["X-Counter"] = made
   local text = wrk.format(nil, "/" .. made)
   made = made + 1
   return text
end
