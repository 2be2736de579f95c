-- Accepts what the sink answers.
function validate_response(response_header, response_payload)
    return response_header[":status"] == "200"
end
