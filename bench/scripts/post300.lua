-- A POST with a body of 300 bytes that is different in every request: the equivalent of the template in
-- bench/src/tool.rs (an id of 36 characters and a filler).
local before = '{"id":"'
local after = '","filler":"' .. string.rep("x", 300 - 36 - 7 - 12 - 2) .. '"}'
local headers = { ["Content-Type"] = "application/json" }
local count = 0

request = function()
  count = count + 1
  return wrk.format("POST", nil, headers, before .. string.format("%036d", count) .. after)
end
