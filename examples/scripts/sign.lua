-- Called before each request: the last response, and the request as the plan makes it.
function make_request(response_headers, response_body, headers, body)
  headers["x-length"] = tostring(#body)
  return headers, body
end
