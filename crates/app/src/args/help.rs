//! Texts below the flags in the long help of commands.

pub(crate) const COMPARE_HELP: &str = "\
Exit codes:
  0 better, the same or undecided    2 bad usage, or runs that cannot be compared
  3 nothing judged, because a run is invalid    4 worse    5 undecided, with --strict";

pub(crate) const ROOT_HELP: &str = "\
Examples:
  plimsoll demo                                            a first run, with a server of its own
  plimsoll http://127.0.0.1:8080/ -R 200 -d 30s            200 requests per second for 30 seconds
  plimsoll http://127.0.0.1:8080/ --threshold 'p99<50ms'   exit code 99 if that does not hold
  plimsoll find http://127.0.0.1:8080/ --slo 'p99<50ms'    the rate up to which it holds
  plimsoll compare before.json after.json                  better, worse, or undecided
  plimsoll import k6 script.js > plan.yaml                 also JMeter, Locust, Postman, HAR, curl …
  plimsoll ui                                              plans and runs in the browser

`plimsoll URL` is the same as `plimsoll run URL`. `plimsoll help COMMAND` says more.";

pub(crate) const TEMPLATE_HELP: &str = "\
Templates:
  URL paths, header values and --body text may contain slots that differ from request to request:
    ${sequence}  index in the run, unique        ${worker}                index of the thread
    ${uuid}      random UUID (version 4)         ${random_int(low,high)}  both ends included
    ${timestamp_s}, _ms, _us, _ns  time since 1970
    ${traceparent(1%)}                     header of W3C Trace Context, with so many sampled
    ${random_hex(n)}, ${random_string(n)}  n random hexadecimal digits, letters and digits
    ${range(start,end)}  start, start + 1, … up to but without end, and again
  Write $${ for a literal ${. The body of -b @file is sent as it is.

Exit codes:
  0 ran, numbers valid    1 unreachable target or unexpected error    2 bad usage
  3 measurement invalid   99 a threshold is shown not to hold
  130/143 interrupted, the partial result was written";

pub(crate) const FIND_HELP: &str = "\
Exit codes:
  0 found, or nothing breaks up to --to    1 unreachable target or unexpected error    2 bad usage
  3 the generator was the limit, or the search was ended by --max-time before there was an upper end,
    or it shows neither that the capacity is --at-least so much nor that it is not
  99 no rate that was tried holds, the capacity is below --at-least, or a level of --sweep breaks --slo
  130/143 interrupted, the partial result was written";
