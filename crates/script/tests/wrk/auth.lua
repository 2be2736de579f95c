-- Logs in once; what the server hands out goes with every later request.
local secret

function request()
   return wrk.format("GET", secret and "/resource" or "/login")
end

function response(status, headers)
   if secret == nil and status == 200 then
      secret = headers["X-Token"]
      wrk.headers["X-Token"] = secret
   end
end
