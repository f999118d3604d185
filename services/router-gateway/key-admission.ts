import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';
import type { Reservations } from '#shared/credit/reservations.ts';
import { worstCaseOf } from '#shared/credit/worst-case.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import { isRated, type RateLimits } from '#shared/rates/rate-limits.ts';
import { withinTokens } from '#shared/rates/within-tokens.ts';
import type { ModelRequest } from '#shared/surfaces/surface.ts';
import type { GatewaySetup } from './gateway-setup.ts';
import type { GatewayLimits } from './limits.ts';

interface KeyAdmissionDeps {
  /** Null: there is no database, so that no key with a limit can be served. */
  reservations: Reservations | null;
  rates: RateLimits;
  limits: GatewayLimits;
}

/** A call before its admission. */
interface NewCall {
  setup: Pick<GatewaySetup, 'config' | 'models'>;
  callId: string;
  deadlineAtMs: number;
  request: ModelRequest;
  /** Null: a chat. */
  embedding: EmbeddingCall | null;
}

/** A call that its key's limits allow. */
export interface AllowedCall {
  /** What the call says of it to its worker. */
  fields: { reserved?: true; countedTokens?: number; maxTokens: number | null };
  /** The call was not sent. */
  release(): void;
  /** The call has ended. Idempotent. */
  end(): void;
  /** The call goes on without this process. */
  leave(): void;
}

/** Whether a key has a limit. Calls of all others cost no promise, no statement and no look at the cache. */
export function isLimited({ limitNano, rates }: CallerKey): boolean {
  return limitNano !== null || isRated(rates);
}

/**
 * Counts a call for the limits of its key, and reserves what it may cost at most.
 * @throws `request.rate_limited`, `router.payment_required`, `service.not_ready`
 */
export async function allowCall(call: NewCall, key: CallerKey, deps: KeyAdmissionDeps): Promise<AllowedCall> {
  const { rates, reservations, limits } = deps;
  const { callId, deadlineAtMs, request, embedding } = call;
  const { config, models } = call.setup;
  const { id: keyId, limitNano, limitReset } = key;
  const asked = {
    request,
    embedding,
    models: models.allKnown(request, embedding === null ? 'chat' : 'vectors'),
    defaultCompletionTokens: config.default_completion_tokens,
    searchEngine: config.plugins.web,
    ocr: config.plugins.file_parser?.ocr,
  };
  const worstCase = (ceiling: number | null) => worstCaseOf({ ...asked, maxTokens: ceiling });
  // A limit that the request states is its client's to lower.
  const isBounded = typeof (request.max_completion_tokens ?? request.max_tokens) === 'number';
  const worst = worstCase(null);
  const allowed = isBounded ? worst : withinTokens(worst, key.rates, worstCase);
  const { amountNano, tokens, maxTokens } = allowed;
  // no fail point, because what it counts of a call that is not sent ends with its minute
  const rated = isRated(key.rates) ? await rates.admit(key, { callId, tokens }) : null;
  const counted = rated?.isShared === true && key.rates.tokensPerMinute !== null ? { countedTokens: tokens } : {};
  if (limitNano === null)
    return {
      fields: { ...counted, maxTokens: allowed === worst ? null : maxTokens },
      release: () => rated?.release(),
      end: () => rated?.end(),
      leave: () => rated?.leave(),
    };
  try {
    if (reservations === null) {
      throw new SwitchyardError('service.not_ready', 'Credit can not be checked: this gateway has no database', {
        details: { retryAfterMs: limits.retryAfterMs },
      });
    }
    await reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs });
    failPoint('call.reserved');
  } catch (error) {
    rated?.release();
    rated?.end();
    throw error;
  }
  return {
    fields: { reserved: true, ...counted, maxTokens },
    release() {
      reservations.release(callId, keyId);
      rated?.release();
    },
    end: () => rated?.end(),
    leave: () => rated?.leave(),
  };
}
