// Runs before the first paint, so that a dark page does not begin with a white flash.
import { applyTheme } from "./theme";

applyTheme();
