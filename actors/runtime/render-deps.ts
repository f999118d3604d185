import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Histories } from './histories.ts';

export interface RenderSettings {
  /** Whether tokens of a reply are sent to readers while it is made. */
  streaming: boolean;
  /** Ceiling on the tokens of one call. */
  maxTokens: number;
}

export interface RenderDeps {
  database: Database;
  histories: Pick<Histories, 'upTo'>;
  bundleOf(hash: string): Promise<Bundle>;
  /** Under which this host holds a partition; undefined once it does not. */
  epochOf(partition: number): number | undefined;
  settings: RenderSettings;
}
