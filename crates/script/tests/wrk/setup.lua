-- Numbers the threads, and asks each at the end what it has done.
local known = {}

function setup(thread)
   known[#known + 1] = thread
   thread:set("number", #known)
end

function init()
   sent, answered = 0, 0
   print("thread " .. number .. " is ready")
end

function request()
   sent = sent + 1
   return wrk.request()
end

function response()
   answered = answered + 1
end

function done()
   for _, thread in ipairs(known) do
      print(("thread %d: %d sent, %d answered"):format(thread:get("number"), thread:get("sent"), thread:get("answered")))
   end
end
