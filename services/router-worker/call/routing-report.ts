import type { ModelNames } from '#shared/config/model-names.ts';
import { splitModelName } from '#shared/config/model-suffixes.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { PipelineEntry, RouterMetadata } from '#shared/contracts/router/router-metadata.ts';
import { errorCatalogue, failureOf } from '#shared/errors/switchyard-error.ts';
import type { Attempted } from './attempt.ts';
import type { Candidate, Choice } from './candidates.ts';

/** The metadata is in one event of the stream. */
const MAX_AVAILABLE = 64;

type ReportedAttempt = Pick<Attempted, 'candidate' | 'error'>;

/** Collects where a call went, for a caller that wants to know. */
export class RoutingReport {
  readonly #request: Pick<ChatRequest, 'model' | 'models'>;
  readonly #attempts: ReportedAttempt[] = [];
  readonly #pipeline: PipelineEntry[] = [];
  #decided: { choice: Choice; names: ModelNames } | null = null;

  constructor(request: Pick<ChatRequest, 'model' | 'models'>) {
    this.#request = request;
  }

  decided(choice: Choice, names: ModelNames): void {
    this.#decided = { choice, names };
  }

  attempted(attempt: ReportedAttempt): void {
    this.#attempts.push(attempt);
  }

  staged(entry: PipelineEntry): void {
    this.#pipeline.push(entry);
  }

  /** @param selected whose content the caller has; null: it has none */
  metadata(selected: Candidate | null): RouterMetadata {
    const { choice, names } = this.#decided ?? { choice: null, names: null };
    const candidates = choice?.candidates ?? [];
    const attempts = this.#attempts;
    const served = (selected ?? attempts.at(-1)?.candidate ?? candidates[0])?.model.id ?? null;
    const requested = this.#request.model ?? this.#request.models?.[0] ?? served ?? '';
    return {
      requested,
      strategy: names === null || served === null ? 'direct' : strategyOf(choice?.decision.requested ?? [], served, names),
      region: null,
      summary: choice === null ? 'no provider was chosen' : summaryOf(choice, selected),
      attempt: attempts.findLastIndex(({ candidate }) => candidate === selected) + 1 || attempts.length,
      is_byok: false,
      endpoints: {
        total: candidates.length + excludedIn(choice),
        available: candidates.slice(0, MAX_AVAILABLE).map((candidate) => ({ ...placeOf(candidate), selected: candidate === selected })),
      },
      ...(attempts.length > 0 && { attempts: attempts.map(({ candidate, error }) => ({ ...placeOf(candidate), status: statusOf(error) })) }),
      ...(this.#pipeline.length > 0 && { pipeline: this.#pipeline }),
    };
  }
}

/** By which of the names in the request the model was found. Suffixes change no name. */
function strategyOf(requested: readonly string[], served: string, names: ModelNames): RouterMetadata['strategy'] {
  const [first] = requested;
  if (first === undefined || first === served) return 'direct';
  const place = requested.findIndex((name) => names.resolve(name)?.model.id === served);
  if (place > 0) return 'fallback';
  return splitModelName(first).base === splitModelName(served).base ? 'direct' : 'alias';
}

function summaryOf(choice: Choice, selected: Candidate | null): string {
  const { candidates, decision } = choice;
  const excluded = excludedIn(choice);
  const order = candidates.length === 0 ? '' : `, order=${decision.sortedBy === null ? decision.strategy : `${decision.strategy}:${decision.sortedBy}`}`;
  return `available=${candidates.length}, selected=${selected?.provider.name ?? 'none'}${order}${excluded === 0 ? '' : `, excluded=${excluded}`}`;
}

function excludedIn(choice: Choice | null): number {
  return (choice?.decision.excluded ?? []).reduce((sum, { endpoints, more = 0 }) => sum + endpoints.length + more, 0);
}

function placeOf({ provider, model }: Candidate): { provider: string; model: string } {
  return { provider: provider.name, model: model.id };
}

/** As callers get it; 200: it answered. */
function statusOf(error: unknown): number {
  return error === null ? 200 : errorCatalogue[failureOf(error).code].status;
}
