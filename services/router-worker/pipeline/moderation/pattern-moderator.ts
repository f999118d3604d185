import { setImmediate as nextTick } from 'node:timers/promises';
import type { ModerationSettings } from '#shared/config/plugin-settings.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type LinearPattern, linearPattern } from '#shared/schema/linear-pattern.ts';
import type { Moderator } from './types.ts';

/** In steps of at most 50 ns (shared/schema/step-budget.ts). */
const LIMITS = {
  /** One match holds the event loop: for a second at most, which is short of a lease. */
  perMatch: 20_000_000,
  /** Of one request: 5 s of CPU. */
  inAll: 100_000_000,
  /** Then other calls go on. */
  atOnce: 200_000,
};

interface NamedPattern {
  reason: string;
  linear: LinearPattern;
}

/** Matches texts against the configured patterns, in bounded time. @throws `request.too_large` for texts that take longer: none passes unread */
export function patternModerator(settings: ModerationSettings['patterns'], limits: Readonly<typeof LIMITS> = LIMITS): Moderator['flaggedIn'] {
  const patterns = settings.map(({ reason, pattern, ignore_case: ignoresCase }) => named(reason, linearPattern(pattern, ignoresCase ? 'iu' : 'u')));
  return async (texts, signal, param) => {
    let left = limits.inAll;
    let now = limits.atOnce;
    for (const text of texts) {
      const reasons = new Set<string>();
      for (const { reason, linear } of patterns) {
        const steps = linear.stepsFor(text.length);
        left -= steps;
        now -= steps;
        if (steps > limits.perMatch || left < 0) throw tooLarge(param);
        if (now < 0) {
          await nextTick();
          signal.throwIfAborted();
          now = limits.atOnce;
        }
        if (linear.test(text)) reasons.add(reason);
      }
      if (reasons.size > 0) return { text, reasons: [...reasons] };
    }
    return null;
  };
}

function named(reason: string, linear: ReturnType<typeof linearPattern>): NamedPattern {
  if ('problem' in linear) throw new SwitchyardError('config.invalid', `plugins.moderation.patterns: the pattern "${reason}" ${linear.problem}`);
  return { reason, linear };
}

function tooLarge(param: string): SwitchyardError {
  return new SwitchyardError('request.too_large', 'The texts of the request are too long for moderation by patterns', { details: { param } });
}
