// The error form with the fields beside it that OpenAI's libraries read.

/** What is inside `error`, and the status that it goes out with. */
export function openaiError<Told extends { code: string; message: string }>(error: Told, status: number) {
  const type = status >= 500 ? "server_error" : "invalid_request_error";
  return { error: { ...error, type, param: null } };
}
