-- Each thread gets one of the addresses that answer.
local candidates

local function answering()
   local found = {}
   for _, address in ipairs(wrk.lookup(wrk.host, wrk.port or "http")) do
      if wrk.connect(address) then
         found[#found + 1] = address
      end
   end
   return found
end

function setup(thread)
   candidates = candidates or answering()
   thread.addr = candidates[math.random(#candidates)]
end

function init()
   print("connected to " .. tostring(wrk.thread.addr))
end
