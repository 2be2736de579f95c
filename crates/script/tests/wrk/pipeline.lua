-- Three requests at once, made before the run.
local batch = {}

function init()
   for _, name in ipairs({ "one", "two", "three" }) do
      table.insert(batch, wrk.format("GET", "/?" .. name))
   end
   batch = table.concat(batch)
end

function request()
   return batch
end
