import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { retryAfter, troubleOf } from "../../src/model/trouble.ts";

const now = Date.UTC(2026, 11, 1);
const error = (message: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ error: { message, ...more } });

/** Who says it, the status, the body. */
const long: [string, number, string][] = [
  [
    "Anthropic",
    400,
    error("prompt is too long: 210000 tokens > 200000 maximum", { type: "invalid_request_error" }),
  ],
  [
    "Anthropic, with the answer",
    400,
    error(
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    ),
  ],
  ["Anthropic, bytes", 413, error("Request exceeds the maximum size", { type: "request_too_large" })],
  [
    "OpenAI",
    400,
    error(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
      { code: "context_length_exceeded" },
    ),
  ],
  [
    "OpenAI, newer",
    400,
    error("Your input exceeds the context window of this model. Please adjust your input and try again."),
  ],
  [
    "OpenRouter",
    400,
    error(
      "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens (240000 of text input, 10000 in the output). Please reduce the length of either one.",
      { code: 400 },
    ),
  ],
  [
    "Gemini",
    400,
    error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", {
      status: "INVALID_ARGUMENT",
    }),
  ],
  [
    "xAI",
    400,
    JSON.stringify({
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    }),
  ],
  [
    "Groq",
    400,
    error("Please reduce the length of the messages or completion.", { code: "context_length_exceeded" }),
  ],
  [
    "Mistral",
    400,
    JSON.stringify({
      object: "error",
      message:
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    }),
  ],
  ["Bedrock", 400, JSON.stringify({ message: "Input is too long for requested model." })],
  [
    "Bedrock, newer",
    400,
    JSON.stringify({
      message: "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
    }),
  ],
  [
    "Kimi",
    400,
    error("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)"),
  ],
  ["GLM", 400, JSON.stringify({ error: { code: "1261", message: "Prompt 超长" } })],
  [
    "sglang",
    400,
    JSON.stringify({
      object: "error",
      message: "The input (33000 tokens) is longer than the model's context length (32768 tokens).",
      code: 400,
    }),
  ],
  [
    "sglang, with the answer",
    400,
    JSON.stringify({
      message: "Requested token count exceeds the model's maximum context length of 32768 tokens.",
    }),
  ],
  [
    "vLLM",
    400,
    JSON.stringify({
      object: "error",
      message:
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 3000 input tokens",
    }),
  ],
  [
    "vLLM, prompt",
    400,
    error("The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
  ],
  [
    "llama.cpp",
    400,
    error("the request exceeds the available context size (4096 tokens), try increasing it", {
      type: "exceed_context_size_error",
    }),
  ],
  [
    "LM Studio",
    400,
    JSON.stringify({
      error:
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    }),
  ],
  [
    "LM Studio, older",
    400,
    JSON.stringify({
      error:
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length",
    }),
  ],
  ["Poolside", 400, error("Input of 200000 tokens exceeds the maximum allowed input length of 131072")],
  ["Ollama", 400, JSON.stringify({ error: "prompt too long; exceeded max context length by 123 tokens" })],
  ["Qwen", 400, error("Range of input length should be [1, 129024]")],
  [
    "Together",
    422,
    error(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
    ),
  ],
  [
    "Cohere",
    400,
    JSON.stringify({
      message: "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    }),
  ],
  ["MiniMax", 400, error("invalid params, context window exceeds limit (2013)")],
  [
    "GitHub",
    400,
    error("prompt token count of 140000 exceeds the limit of 128000", {
      code: "model_max_prompt_tokens_exceeded",
    }),
  ],
  [
    "Cerebras",
    400,
    JSON.stringify({
      message:
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    }),
  ],
  [
    "an error in a stream",
    0,
    error("the request exceeds the available context size. try increasing the context size", { code: 400 }),
  ],
  ["an empty 413", 413, ""],
  ["a proxy's 413", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"],
];

const notLong: [string, number, string, string][] = [
  [
    "OpenAI, tokens a minute",
    429,
    error(
      "Rate limit reached for gpt-4 in organization on tokens per min (TPM): Limit 10000, Used 9000, Requested 3000. Please try again in 12s.",
    ),
    "again",
  ],
  ["Bedrock", 429, JSON.stringify({ message: "Too many tokens, please wait before trying again." }), "again"],
  [
    "Bedrock, as a 400",
    400,
    JSON.stringify({ message: "Too many tokens, please wait before trying again." }),
    "again",
  ],
  [
    "Groq's 413 for tokens a minute",
    413,
    error(
      "Request too large for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 12000, please reduce your message size and try again.",
      { code: "rate_limit_exceeded" },
    ),
    "again",
  ],
  [
    "Anthropic, input tokens a minute",
    429,
    error(
      "This request would exceed your organization's rate limit of 40,000 input tokens per minute; reduce the prompt length or the maximum tokens requested",
    ),
    "again",
  ],
  ["Anthropic, overloaded", 529, error("Overloaded", { type: "overloaded_error" }), "again"],
  [
    "Gemini, exhausted",
    429,
    error("Resource has been exhausted (e.g. check quota).", { status: "RESOURCE_EXHAUSTED" }),
    "again",
  ],
  [
    "an answer that is too long",
    400,
    error("max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
    "refused",
  ],
  [
    "a name that is too long",
    400,
    error(
      "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
      { code: "string_above_max_length" },
    ),
    "refused",
  ],
  [
    "an id that is too long",
    400,
    error(
      "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40",
    ),
    "refused",
  ],
  [
    "a quota that is spent",
    429,
    error("You exceeded your current quota, please check your plan and billing details.", {
      code: "insufficient_quota",
    }),
    "refused",
  ],
];

describe("trouble", () => {
  for (const [who, status, text] of long) {
    it(`B47 too long, as said by ${who}`, () => {
      assert.equal(troubleOf({ status, text, now }).kind, "long");
    });
  }
  for (const [who, status, text, kind] of notLong) {
    it(`B47 not too long: ${who}`, () => assert.equal(troubleOf({ status, text, now }).kind, kind));
  }

  it("statuses that pass are tried again, others are not", () => {
    for (const status of [408, 409, 429, 500, 502, 503, 504, 520, 529]) {
      assert.equal(troubleOf({ status, text: "", now }).kind, "again", String(status));
    }
    for (const status of [301, 400, 401, 402, 403, 404, 405, 418, 422]) {
      assert.equal(troubleOf({ status, text: error("something else"), now }).kind, "refused", String(status));
    }
  });

  it("B39 a 400 about a signature is about thinking", () => {
    const text = error("messages.1.content.0: Invalid `signature` in `thinking` block", {
      type: "invalid_request_error",
    });
    assert.equal(troubleOf({ status: 400, text, now }).kind, "thinking");
  });

  it("content that a filter refused is told apart", () => {
    for (
      const text of [
        error(
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
          { code: "content_filter" },
        ),
        error("Output blocked by content filtering policy", { type: "invalid_request_error" }),
        error("Invalid prompt: your prompt was flagged as potentially violating our usage policy."),
      ]
    ) assert.equal(troubleOf({ status: 400, text, now }).kind, "content", text);
  });

  it("an error within a reply that began well is read by its own code", () => {
    assert.equal(
      troubleOf({ status: 0, text: error("Overloaded", { type: "overloaded_error" }), now }).status,
      529,
    );
    assert.equal(troubleOf({ status: 0, text: error("No credits", { code: 402 }), now }).kind, "refused");
    assert.equal(troubleOf({ status: 0, text: error("Internal"), now }).kind, "again");
  });

  it("a secret in the words of a provider is masked, and long words are cut", () => {
    const text = error(`Incorrect API key provided: sk-verysecret at https://h/p?k=v. ${"x".repeat(5000)}`);
    const trouble = troubleOf({ status: 401, text, now, secrets: ["sk-verysecret"] });
    assert.doesNotMatch(trouble.message, /verysecret|k=v/);
    assert.ok(trouble.message.length < 500);
  });

  it("retry-after is read in seconds, as a date, in ms, and nonsense is nothing", () => {
    const read = (value: string, name = "retry-after") => retryAfter(new Headers({ [name]: value }), now);
    assert.equal(read("7"), 7000);
    assert.equal(read("0.5"), 500);
    assert.equal(read("Tue, 01 Dec 2026 00:00:30 GMT"), 30_000);
    assert.equal(read("Tue, 01 Dec 2020 00:00:30 GMT"), 0);
    assert.equal(read("250", "retry-after-ms"), 250);
    for (const nonsense of ["soon", "-1", "1e9", "NaN", "", "12 apples"]) {
      assert.equal(read(nonsense), undefined, nonsense);
    }
    assert.equal(retryAfter(new Headers(), now), undefined);
  });
});
