// main.tsx - puts the dashboard on the page
import { render } from "preact";
import { App } from "./app";
import { open } from "./state";
import "./theme";

const root = document.getElementById("app");
if (root) render(<App />, root);
open();
