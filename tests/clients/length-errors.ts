import { brokenAnswer } from './upstream-answers.ts';

/** Codes that the contract turns into an answer that was cut off for its length. */
const LENGTH_CODES = ['context_length_exceeded', 'max_tokens_exceeded', 'token_limit_exceeded', 'string_too_long'];

/** Before and in the middle of an answer, with what came until then. */
function lengthReplies(code: string) {
  const error = { message: 'too long', type: 'invalid_request_error', param: null, code };
  return [
    { when: 'before content', reply: { status: 400, body: { error } }, text: '' },
    { when: 'in the middle', reply: { chunks: [...brokenAnswer.slice(0, 2), { error }] }, text: 'Half an ' },
  ];
}

/** Each code at each time, with the text until then. */
export const lengthRows = LENGTH_CODES.flatMap((code) => lengthReplies(code).map((row) => ({ code, ...row })));
