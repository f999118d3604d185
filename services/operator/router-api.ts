import { type ErrorCode, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Target } from './targets.ts';

const TIMEOUT_MS = 30_000;
const MAX_QUOTED = 200;
const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'request.invalid',
  401: 'request.unauthorized',
  403: 'request.forbidden',
  404: 'request.not_found',
  409: 'request.conflict',
  429: 'request.rate_limited',
};

/**
 * One request to the management API of a router.
 *
 * @returns the parsed body
 * @throws SwitchyardError with the server's message; `service.unreachable` without an answer
 */
export async function routerRequest({ url, key }: Target, method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (cause) {
    throw new SwitchyardError('service.unreachable', `there is no answer from ${url}`, { cause });
  }
  const text = await response.text().catch(() => '');
  const answer = jsonOf(text);
  if (response.ok && answer !== undefined) return answer;
  const { message } = Object(Object(answer).error);
  const said = typeof message === 'string' ? message : `${method} ${path}: ${response.status} ${text.slice(0, MAX_QUOTED)}`.trim();
  throw new SwitchyardError(codes[response.status] ?? 'service.not_ready', said);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
