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
 * One request to the management API of a router, or to its platform.
 *
 * @returns `body`: parsed
 * @throws SwitchyardError with the server's message; `service.unreachable` without an answer
 */
export async function routerRequest(
  { url, key, scheme = 'Bearer' }: Target,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  let response: Response;
  try {
    response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `${scheme} ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (cause) {
    throw new SwitchyardError('service.unreachable', `${method} ${path.split('?', 1)[0]}: no answer from ${url}`, { cause });
  }
  const text = await response.text().catch(() => '');
  const answer = jsonOf(text);
  if (response.ok && answer !== undefined) return { status: response.status, body: answer };
  const { error } = Object(answer);
  // The agent server's errors are texts.
  const message = typeof error === 'string' ? error : Object(error).message;
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
