-- POST with a JSON body of about 300 bytes that differs from request to request: the same fields, sources and
-- length as POST_BODY in src/cases.rs, so that both generators do the same work.
local sequence = 0
local headers = { ["Content-Type"] = "application/json" }
local template = '{"id":%d,"user":"user-%d","email":"user-%d@example.com","amount":%d,"created_ms":%d000,'
  .. '"currency":"EUR","status":"new","note":"'
  .. 'A note of the length that people write under an order: leave it with the neighbours, please, '
  .. 'and ring twice, for the bell is not loud at all, really"}'

request = function()
  local body = string.format(template, sequence, sequence, sequence, math.random(1, 100000), os.time())
  sequence = sequence + 1
  return wrk.format("POST", nil, headers, body)
end
