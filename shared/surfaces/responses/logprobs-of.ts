import type { Logprobs } from '../../contracts/router/chat-completion.ts';
import type { ResponseLogprob } from '../../contracts/router/response-object.ts';

type Token = NonNullable<Logprobs['content']>[number]['top_logprobs'][number];

/** Clients require the bytes of each token. */
export function logprobsOf(tokens: Logprobs['content']): ResponseLogprob[] {
  return (tokens ?? []).map((token) => ({ ...withBytes(token), top_logprobs: token.top_logprobs.map(withBytes) }));
}

function withBytes({ token, logprob, bytes }: Token) {
  return { token, logprob, bytes: bytes ?? [...Buffer.from(token, 'utf8')] };
}
