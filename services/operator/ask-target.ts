import { AgentError, clientError } from '#client/agent-error.ts';
import { API_VERSIONS } from '#shared/contracts/api-versions.ts';
import { type ErrorCode, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { FailureWithFix } from './failure-with-fix.ts';
import { NAMES, nextStep } from './next-step.ts';
import type { FoundTarget, ServerName } from './targets.ts';

const PROBE_MS = 3_000;
const VERSION = /^[\w.+-]{1,40}$/;
const statuses: Partial<Record<ErrorCode, number>> = {
  'request.invalid': 400,
  'request.conflict': 409,
  'request.unauthorized': 401,
  'request.forbidden': 403,
  'request.not_found': 404,
  'request.rate_limited': 429,
  'service.not_ready': 503,
};
/** Of system errors; any other is named by its code. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name could not be looked up',
  ECONNRESET: 'the connection was closed',
  ETIMEDOUT: 'the machine does not answer',
  UND_ERR_SOCKET: 'the connection was closed',
  HTTPParserError: 'it does not speak HTTP',
  'bad port': 'no HTTP client may use that port',
};

/**
 * Does what asks a server for something. A failure names the server, the reason and the next step; of a server of another version of the API, both versions.
 *
 * @param knownIds where ids that exist are found, for one that does not
 * @throws FailureWithFix; of a failure that needs no fix: the failure
 */
export async function askTarget<T>(target: FoundTarget, knownIds: string | null, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw await explained(error, target, knownIds);
  }
}

async function explained(cause: unknown, target: FoundTarget, knownIds: string | null): Promise<unknown> {
  const error = cause instanceof TypeError ? clientError('client.bad_answer', 'the answer has another form than this program expects', { cause }) : cause;
  const status = statusOf(error);
  if (status === undefined || !(error instanceof Error)) return error;
  const found = hasNoAnswer(error) ? null : await serverAt(target.url);
  const versions = found === target.server ? await otherVersion(target) : null;
  // A bug of this program, unless the versions explain it.
  if (cause instanceof TypeError && versions === null) return cause;
  const fix = nextStep({ ...target, status, found, versions, knownIds });
  const isOther = found !== null && found !== target.server;
  const message = isOther ? `${target.url} is the ${NAMES[found]}, not the ${NAMES[target.server]}` : messageOf(error, target.url, status);
  return fix === null ? error : new FailureWithFix(error, fix, message);
}

/** Null: no answer. Undefined: not of a request. */
function statusOf(error: unknown): number | null | undefined {
  if (error instanceof AgentError) return error.status;
  if (!(error instanceof SwitchyardError)) return undefined;
  return error.code === 'service.unreachable' ? null : statuses[error.code];
}

function hasNoAnswer(error: Error): boolean {
  return 'code' in error && (error.code === 'service.unreachable' || error.code === 'client.no_answer' || error.code === 'client.timeout');
}

function messageOf(error: Error, url: string, status: number | null): string {
  const said = error.message.includes(url) ? error.message : `${url}: ${error.message}`;
  const reason = status === null ? reasonOf(error) : null;
  return reason === null ? said : `${said} (${reason})`;
}

/** The reason stands in the innermost cause: fetch's own message is generic. */
function reasonOf({ cause }: Error): string | null {
  if (!(cause instanceof Error)) return null;
  const inner = reasonOf(cause);
  if (inner !== null) return inner;
  const code = String(Object(cause).code ?? cause.message);
  return REASONS[code] ?? code;
}

/** Null: the server has the same version, or does not say which. */
async function otherVersion({ server, url, key, scheme = 'Bearer' }: FoundTarget): Promise<{ server: string; own: string } | null> {
  try {
    const headers = { accept: 'application/json', authorization: `${scheme} ${key}` };
    const response = await fetch(`${url}/`, { headers, redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    const { version } = Object(await response.json());
    const own = API_VERSIONS[server];
    return typeof version === 'string' && VERSION.test(version) && version !== own ? { server: version, own } : null;
  } catch {
    return null;
  }
}

/** By where a browser is led from `GET /`, without a key: the agent server has a login. Null: it is neither. */
async function serverAt(url: string): Promise<ServerName | null> {
  try {
    const response = await fetch(`${url}/`, { headers: { accept: 'text/html' }, redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    await response.body?.cancel();
    const page = response.headers.get('location') ?? '';
    if (/\/(chat|auth\/login\?.*)$/.test(page)) return 'agent';
    return page.endsWith('/console') ? 'router' : null;
  } catch {
    return null;
  }
}
