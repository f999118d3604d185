import { z } from 'zod';
import type { UpstreamError } from '../http-stream/to-error.ts';

const errorBody = z.object({
  __type: z.string().nullable().catch(null),
  message: z.string().nullable().catch(null),
  Message: z.string().nullable().catch(null),
  originalMessage: z.string().nullable().catch(null),
});

/** What an exception stands for, under whatever status it came. Those of the credential are our configuration's. */
const STATUSES: Readonly<Record<string, number>> = {
  ValidationException: 400,
  AccessDeniedException: 403,
  UnrecognizedClientException: 403,
  InvalidSignatureException: 403,
  ExpiredTokenException: 403,
  IncompleteSignatureException: 403,
  MissingAuthenticationTokenException: 403,
  ResourceNotFoundException: 404,
  ModelTimeoutException: 408,
  ThrottlingException: 429,
  ServiceQuotaExceededException: 429,
  ModelNotReadyException: 429,
  InternalServerException: 500,
  ModelErrorException: 502,
  ModelStreamErrorException: 502,
  ServiceUnavailableException: 503,
};

/** Causes that the API names in the message alone, all as a ValidationException. */
const CAUSES: readonly (readonly [words: RegExp, cause: Pick<UpstreamError, 'code' | 'status'>])[] = [
  [
    /too long for requested model|input tokens exceeds maximum length|too many input tokens|prompt is too long|exceeds? (?:the )?(?:model's )?context (?:limit|window)|maximum context length/i,
    { code: 'context_length_exceeded' },
  ],
  [/content filtering policy|usage policy/i, { code: 'content_policy_violation' }],
  [/model identifier is invalid|on-demand throughput isn.t supported/i, { code: 'model_not_found', status: 404 }],
];

/** The body of a refusal, or of an exception in a stream. @param header of a refusal, where its type may stand alone */
export function describeError(error: unknown, header: (name: string) => string | null = () => null): UpstreamError {
  const { __type: type, message: small, Message: large, originalMessage } = errorBody.safeParse(error).data ?? {};
  const message = small ?? large ?? originalMessage ?? (typeof error === 'string' ? error : null);
  const name = nameOf(header('x-amzn-errortype') ?? type ?? null);
  const status = name === null ? undefined : STATUSES[name];
  const cause = name === null || status === 400 ? CAUSES.find(([words]) => words.test(message ?? ''))?.[1] : undefined;
  return { message, type: name, code: null, ...(status === undefined ? {} : { status }), ...cause };
}

/** Types come with a namespace before `#` or an address behind `:`, and in streams as names of fields. */
function nameOf(type: string | null): string | null {
  const name = /^(?:[^#:]*#)?([\w.-]{1,100})(?::|$)/.exec(type ?? '')?.[1] ?? null;
  return name?.endsWith('Exception') ? `${name[0]?.toUpperCase()}${name.slice(1)}` : name;
}
