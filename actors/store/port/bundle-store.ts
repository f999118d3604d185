import type { Bundle } from '#shared/config/load-bundle.ts';

export interface BundleStore {
  /** Null when no bundle of this hash is stored. @throws `config.invalid` for documents that this version can't read */
  read(hash: string): Promise<Bundle | null>;
}
