import { type ErrorCode, failureOf } from '#shared/errors/switchyard-error.ts';
import type { Candidate } from './candidates.ts';

/** Which candidates remain after a failure before the commit point. */
type FallBack =
  /** It concerns this endpoint alone. */
  | 'next-endpoint'
  /** Of the same model, only endpoints with a larger context remain. */
  | 'larger-context'
  /** Every endpoint of this model would fail alike. */
  | 'next-model';

export interface CandidateFailure {
  code: ErrorCode;
  candidate: Candidate;
}

/** A model that refuses a request does so at all endpoints; another model may accept it. */
function fallBackAfter(code: ErrorCode): FallBack {
  switch (code) {
    case 'router.context_length':
      return 'larger-context';
    case 'router.provider_refused':
    case 'router.content_policy':
    case 'request.too_large':
      return 'next-model';
    default:
      return 'next-endpoint';
  }
}

/** Whether the same endpoint may be tried once more: no connection came to be, or an idle one was closed by the upstream, which is no failure of it. */
export function isRepeated(error: unknown): boolean {
  return failureOf(error).details.connection !== undefined;
}

/**
 * Which candidates are tried with the text of the request's files in their place. The size of the files may be what a failed endpoint refused, or the files
 * themselves, such as their pages; what they say is the same.
 */
export function remainingForText(failures: readonly CandidateFailure[], candidates: readonly Candidate[]): readonly Candidate[] {
  const alike = failures.filter(({ code }) => code === 'router.content_policy');
  return alike.reduce((left, { code, candidate }) => remainingAfter(code, candidate, left), candidates);
}

/** Which of the candidates behind a failed one are tried. */
export function remainingAfter(code: ErrorCode, failed: Candidate, rest: readonly Candidate[]): Candidate[] {
  const contextOf = ({ endpoint }: Candidate) => endpoint.context_length ?? 0;
  switch (fallBackAfter(code)) {
    case 'next-endpoint':
      return [...rest];
    case 'larger-context':
      return rest.filter((candidate) => candidate.model !== failed.model || contextOf(candidate) > contextOf(failed));
    case 'next-model':
      return rest.filter((candidate) => candidate.model !== failed.model);
  }
}
