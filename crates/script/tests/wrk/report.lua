-- Writes percentiles as lines of their own.
function done(summary, latency, requests)
   io.write(string.format("%d requests, %d errors\n", summary.requests, summary.errors.status))
   for _, percent in ipairs({ 50, 90, 99, 99.999 }) do
      io.write(string.format("%g%%,%d\n", percent, latency:percentile(percent)))
   end
end
