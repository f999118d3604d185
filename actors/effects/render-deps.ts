import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Evaluations } from '../engine/evaluation/evaluation-set.ts';
import type { CustomerReader } from '../inputs/customer-reader.ts';
import type { Histories } from '../runtime/publish/histories.ts';
import type { RunStore } from '../store/port/run-store.ts';
import type { TurnStore } from '../store/port/turn-store.ts';
import type { ModelRequestSettings } from './model-request.ts';

export interface RenderSettings extends ModelRequestSettings {
  /** Whether readers get a reply's parts as they arrive. */
  streaming: boolean;
  /** Per call. */
  maxTokens: number;
  /** The key of model calls, `sha256:` and the hash of its secret. Of this host's configuration, whatever bundle a turn has. */
  modelKey: string;
}

export interface RenderDeps {
  runs: Pick<RunStore, 'load' | 'transcript' | 'assistantMessages' | 'toolLists'>;
  turns: Pick<TurnStore, 'staged'>;
  customers: Pick<CustomerReader, 'ofTurn'>;
  histories: Pick<Histories, 'upTo'>;
  bundleOf(hash: string): Promise<Bundle>;
  /** @param set null: none */
  evaluationsOf(bundle: Bundle, set: string | null): Promise<Evaluations>;
  /** Undefined unless this host owns the partition. */
  epochOf(partition: number): number | undefined;
  settings: RenderSettings;
}
