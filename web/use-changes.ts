import { useEffect, useState } from 'preact/hooks';
import type { Changes } from './changes.ts';

/** Renders the component again when something has changed. */
export function useChanges(changes: Changes): void {
  const [, setCount] = useState(0);
  useEffect(() => changes.listen(() => setCount((count) => count + 1)), [changes]);
}
