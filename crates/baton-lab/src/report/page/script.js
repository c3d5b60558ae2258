(function () {
  "use strict";
  var cases = Array.prototype.slice.call(document.querySelectorAll(".case[data-verdict]"));
  var buttons = Array.prototype.slice.call(document.querySelectorAll("[data-show]"));
  var category = document.getElementById("category");
  var place = document.getElementById("place");
  var words = document.getElementById("words");
  var none = document.getElementById("none");
  var show = "all";

  function apply() {
    var text = words.value.trim().toLowerCase();
    var seen = 0;
    cases.forEach(function (one) {
      var fits = (show === "all" || one.dataset.verdict === show) &&
        (!category.value || one.dataset.category === category.value) &&
        (!place.value || one.dataset.place === place.value) &&
        (!text || one.dataset.words.indexOf(text) >= 0);
      one.hidden = !fits;
      if (fits) { seen += 1; }
    });
    document.querySelectorAll("section[data-group]").forEach(function (group) {
      group.hidden = !group.querySelector(".case:not([hidden])");
    });
    none.hidden = seen > 0;
    buttons.forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.dataset.show === show));
    });
  }

  buttons.forEach(function (button) {
    button.addEventListener("click", function () { show = button.dataset.show; apply(); });
  });
  [category, place, words].forEach(function (input) { input.addEventListener("input", apply); });

  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-copy]");
    if (!button) { return; }
    var text = button.parentNode.querySelector("pre").textContent;
    function done(ok) {
      button.textContent = ok ? "Copied" : "Select it";
      setTimeout(function () { button.textContent = "Copy"; }, 1500);
    }
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(text).then(function () { done(true); }, function () { done(false); });
      return;
    }
    // A page opened from disk has no clipboard of its own.
    var range = document.createRange();
    range.selectNodeContents(button.parentNode.querySelector("pre"));
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    done(document.execCommand && document.execCommand("copy"));
  });

  document.getElementById("theme").addEventListener("click", function () {
    var root = document.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark" :
      window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  var wanted = decodeURIComponent(location.hash.slice(1));
  var target = wanted && document.getElementById(wanted);
  if (target && target.classList.contains("case")) { target.open = true; target.scrollIntoView(); }
  apply();
})();
