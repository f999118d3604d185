import { AgentError } from '#client/agent-error.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import { FailureWithFix } from './failure-with-fix.ts';

/** Exit codes of the command line, which docs/cli.md lists. */
export const exitCodes = {
  done: 0,
  /** The command has failed, or has found what it looks for: an invalid configuration, a failed scenario, a finding of `doctor`. */
  failed: 1,
  /** Of the command line itself. */
  usage: 2,
  /** A server or a store can not be reached, or is not ready: repeating may help. */
  unreachable: 3,
  /** A key is missing, wrong or may not do this. */
  refused: 4,
} as const;

const UNREACHABLE = new Set([
  'service.unreachable',
  'service.not_ready',
  'service.no_answer',
  'service.overloaded',
  'bus.closed',
  'bus.full',
  'storage.closed',
]);
const REFUSED = new Set(['request.unauthorized', 'request.forbidden']);

/** What to do about a wrong command line. */
export const SEE_HELP = 'add --help to the command: it lists what it takes';

/** A failure as it is printed. `code`: of the catalogue, of the agent server's answer, or of its client. */
export interface PrintedFailure {
  code: string;
  message: string;
  /** What to do next; null: the message says it. */
  fix: string | null;
  exitCode: number;
}

/** Null: a bug, of which the stack is shown. */
export function failureToPrint(error: unknown): PrintedFailure | null {
  if (error instanceof FailureWithFix) {
    const failure = failureToPrint(error.failure);
    return failure && { ...failure, message: maskUrl(error.message), fix: maskUrl(error.fix) };
  }
  if (error instanceof SwitchyardError) {
    const { code, message } = error;
    return {
      code,
      message: maskUrl(message),
      fix: null,
      exitCode: REFUSED.has(code) ? exitCodes.refused : UNREACHABLE.has(code) ? exitCodes.unreachable : exitCodes.failed,
    };
  }
  if (!(error instanceof AgentError)) return null;
  const { code, message, status, isTransient, path } = error;
  const isRefused = status === 401 || status === 403;
  return {
    code,
    message: maskUrl(path === null ? message : `${message} (${path})`),
    fix: null,
    exitCode: isRefused ? exitCodes.refused : isTransient ? exitCodes.unreachable : exitCodes.failed,
  };
}

/** The one shape of errors with `--json`: a line on stderr. */
export function failureJson({ code, message, fix }: Omit<PrintedFailure, 'exitCode'>): string {
  return JSON.stringify({ error: { code, message, fix } });
}

/** For people: as `doctor` prints its findings. */
export function failureText({ message, fix }: Pick<PrintedFailure, 'message' | 'fix'>): string {
  return fix === null ? message : `${message}\n  fix: ${fix}`;
}
