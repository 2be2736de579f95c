-- Waits ten to fifty milliseconds before a request.
delay = function()
   return math.random(10, 50)
end
