import type { EngineStep } from '../step.ts';
import type { MatchAnswer } from './match-answer.ts';
import type { MatchItem } from './match-batch.ts';
import type { PolicyClass } from './policy-class.ts';
import { disambiguate } from './steps/disambiguate.ts';
import { matchActionable } from './steps/match-actionable.ts';
import { matchAgain } from './steps/match-again.ts';
import { matchCustomerDependent } from './steps/match-customer-dependent.ts';
import { matchLow } from './steps/match-low.ts';
import { matchObservational } from './steps/match-observational.ts';

/** The question of each class. */
export const matchSteps: Readonly<Record<PolicyClass, EngineStep<readonly MatchItem[], MatchAnswer>>> = {
  observational: matchObservational,
  actionable: matchActionable,
  'previously-applied': matchAgain,
  'customer-dependent': matchCustomerDependent,
  'low-criticality': matchLow,
  disambiguation: disambiguate,
};
