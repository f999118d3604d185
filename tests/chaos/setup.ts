import { refuseOldBuild } from '../helpers/refuse-old-build.ts';

/** Once per run. The suite starts servers of its own. */
export default function setup(): void {
  refuseOldBuild();
}
