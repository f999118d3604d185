import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Histories } from './histories.ts';

export interface RenderSettings {
  /** Whether a reply's parts are sent to readers as they arrive. */
  streaming: boolean;
  /** Per call. */
  maxTokens: number;
}

export interface RenderDeps {
  database: Database;
  histories: Pick<Histories, 'upTo'>;
  bundleOf(hash: string): Promise<Bundle>;
  /** The epoch under which this host owns a partition; undefined when it does not. */
  epochOf(partition: number): number | undefined;
  settings: RenderSettings;
}
